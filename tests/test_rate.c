/* The yardstick of `runner bench` and `doctor`: right products, and all of a step's products counted. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/model.h"
#include "runner/rate.h"

enum { VOCABULARY = 2048, ROWS = 32 };

static struct model_config day2(void)
{
    struct config config;
    config_init(&config);
    config.model.context_length = 256;
    config.model.d_model = 256;
    config.model.n_heads = 8;
    config.model.n_layers = 4;
    return config.model;
}

/* The products are the model's FLOPs without attention: 6 * L * H * D * T a token. */
static double products_expected(const struct model_config *model)
{
    struct model_shape shape = model_shape_of(model, VOCABULARY);
    double attention = 6.0 * (double)(shape.n_layers * shape.n_heads * shape.head_dim * shape.context_length);
    return ROWS * (model_flops_per_token(model, VOCABULARY) - attention);
}

static void expect_counted(const struct model_config *model)
{
    struct products *products = products_create(model, VOCABULARY, ROWS);
    /* Whole numbers below 2^53: exact. */
    cr_expect_eq(products_flops(products), products_expected(model), "%.17g is not %.17g", products_flops(products),
                 products_expected(model));
    products_free(products);
}

Test(rate, every_product_of_a_step_is_counted)
{
    struct model_config model = day2();
    expect_counted(&model);
    model.feed_forward = FEED_FORWARD_SWIGLU;
    model.kv_heads = 2;
    model.position = POSITION_ROPE;
    expect_counted(&model);
    model.mtp_depth = 3;
    expect_counted(&model);
    model.tied_embeddings = false;
    expect_counted(&model);
}

Test(rate, products_agree_with_a_plain_loop)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 1, 7}, {1, 9, 64}, {17, 31, 5}, {65, 33, 129}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        double error = product_error(shapes[i][0], shapes[i][1], shapes[i][2]);
        cr_expect_leq(error, 1, "%d: %g", (int)i, error);
    }
    /* A difference there is: the comparison is not of a thing with itself. */
    cr_assert_gt(product_error(65, 33, 129), 0);
}

Test(rate, timing_products_takes_time)
{
    struct model_config model = day2();
    struct products *products = products_create(&model, VOCABULARY, ROWS);
    cr_assert_gt(products_time(products), 0);
    cr_assert_gt(products_openblas_time(products), 0);
    cr_assert_gt(products_best_time(products), 0);
    products_free(products);
}
